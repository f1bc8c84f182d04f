"""Types that everything else is made of; no models, no files."""
