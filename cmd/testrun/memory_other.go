//go:build !linux

package main

// inMemory finds no in-memory folder here.
func inMemory() string { return "" }
