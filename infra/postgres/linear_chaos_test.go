//go:build chaos

package postgres_test

import (
	"fmt"
	"testing"
)

// TestLinearInMuchTrouble is TestLinearInTrouble with longer histories, repeated.
func TestLinearInMuchTrouble(t *testing.T) {
	for seed := uint64(100); seed < 110; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { linearInTrouble(t, seed, 400, 30) })
	}
}
