"""Reproduces the tables of the papers, compares with peers, and generates TideBench's world."""
