"""The dashboard of rankscope: it draws reports and tables, and computes nothing."""
