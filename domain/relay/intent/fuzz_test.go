package intent

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/eventlog/eventtest"
)

// Decoding any logged bytes returns an event or an error.
func FuzzCodec(f *testing.F) { eventtest.Mutated(f, Codec()) }
