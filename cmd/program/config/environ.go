package config

import (
	"fmt"
	"regexp"
	"strings"
)

// environment returns the variables of the configuration. It refuses other variables with the
// same prefix: a misspelt setting must not silently keep its default.
func (r *resolver) environment(environ []string) map[string]string {
	names := []string{configEnv}
	known := map[string]bool{configEnv: true}
	for _, s := range r.table {
		names = append(names, s.env())
		known[s.env()] = true
	}
	ours := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		_, again := ours[name]
		switch {
		case !strings.HasPrefix(name, envPrefix), again: // os.Getenv returns the first value, too
		case known[name]:
			ours[name] = value
		case !isForeign(name, value):
			r.problems = append(r.problems, Problem{"env " + name, "",
				fmt.Sprintf("is not a setting; the nearest is %s", nearest(name, names))})
		}
	}
	return ours
}

var (
	// Kubernetes gives every container the address of each service of its namespace
	// (kubernetes.io, "Accessing the Service": environment variables). A service named
	// watchtower, or watchtower-x, yields these names.
	kubernetesName = regexp.MustCompile(`^WATCHTOWER_([A-Z0-9_]+_)?SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$`)
	// The older form, Docker's links, is recognised by its suffix or its value.
	linkName  = regexp.MustCompile(`^WATCHTOWER_([A-Z0-9_]+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)
	linkValue = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// isForeign reports whether a variable with our prefix belongs to another program: a client of
// the service, the tests, or Kubernetes.
func isForeign(name, value string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return rest == "URL" || rest == "ADMIN_URL" || rest == "API_KEY" || strings.HasPrefix(rest, "TEST_") || strings.HasPrefix(rest, "CRASH_") ||
		kubernetesName.MatchString(name) || linkName.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && linkValue.MatchString(value)
}
