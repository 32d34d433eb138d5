"""Frozen records that cross module borders."""
