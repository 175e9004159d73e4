"""The views, one file each; `show` draws the view."""
