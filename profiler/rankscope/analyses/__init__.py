"""Pure functions from a run to a frozen result; one file each, none imports another."""
