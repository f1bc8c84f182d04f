"""Types that everything else is made of: heads, documents, batches of maps, states and how they merge."""
