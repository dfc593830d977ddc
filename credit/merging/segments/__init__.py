"""The merge `segments`: texts that differ only in what machines print are one."""
