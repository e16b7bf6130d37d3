//go:build chaos

package main

import "testing"

// Like TestEndedAtRandomEmbedded with 1,000,000 events and 100 kills.
func TestEndedAtRandomForLong(t *testing.T) { onEmbedded(t, 250_000, 100) }
