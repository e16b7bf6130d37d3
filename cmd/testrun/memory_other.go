//go:build !linux

package main

// inMemory knows no folder in memory here.
func inMemory() string { return "" }
