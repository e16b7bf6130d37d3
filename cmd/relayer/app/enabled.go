package app

import (
	"fmt"
	"strings"
)

// enabledVariable is a switch that other relayers have: whoever turns it off must not find
// that it was turned off for nothing.
const enabledVariable = "RELAYER_ENABLED"

// checkEnabled refuses to serve where the environment says that nothing is to be relayed, or
// does not say clearly whether anything is.
func checkEnabled(environ []string) error {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if name != enabledVariable {
			continue
		}
		switch strings.ToLower(value) {
		case "true", "1":
		case "false", "0":
			return fmt.Errorf("%s is %s: nothing is relayed; whoever wants delivery alone runs watchtower serve", name, value)
		default:
			return fmt.Errorf("%s is true or false, and not %q", name, value)
		}
	}
	return nil
}
