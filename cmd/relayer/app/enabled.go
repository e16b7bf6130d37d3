package app

import (
	"fmt"
	"strings"
)

// enabledVariable is a switch of other relayers. An operator who turns it off must not find it
// ignored.
const enabledVariable = "RELAYER_ENABLED"

// checkEnabled refuses to serve if the environment switches relaying off, or has an unclear
// value.
func checkEnabled(environ []string) error {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name != enabledVariable {
			continue
		}
		switch strings.ToLower(value) {
		case "true", "1":
		case "false", "0":
			return fmt.Errorf("%s is %s, so the relayer does not start; for delivery alone, run watchtower serve", name, value)
		default:
			return fmt.Errorf("%s must be true or false, not %q", name, value)
		}
	}
	return nil
}
