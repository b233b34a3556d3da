"""Bootstrap and jackknife: hashed random numbers, sums of replicates, intervals."""
