"""Types that all other packages use: heads, documents, batches of maps, states and how states merge."""
