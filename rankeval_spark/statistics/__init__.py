"""How certain a mean is: moments that merge, intervals, comparisons and gates from them. numpy and scipy only.

Import the modules: scipy is loaded by those that compute with it, and a config names only their defaults.
"""
