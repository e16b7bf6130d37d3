//go:build chaos

package main

import "testing"

// The same with 1,000,000 events and 100 deaths.
func TestEndedAtRandomForLong(t *testing.T) { onEmbedded(t, 250_000, 100) }
