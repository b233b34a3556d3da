"""One module for each command: call the application and show what it returns."""
