"""What comes from outside: values, labels, weights and keys, read by declared type, one by one."""
