"""Broken variants of the example kernels, and the program that counts how many are found."""
