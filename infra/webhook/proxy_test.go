package webhook

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// proxyVariables are the environment variables that set a program's proxy.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}

// TestNoProxyOfTheEnvironment runs TestWhatIsSent in a process that starts with a proxy in its
// environment. net/http reads the environment once per process, so a variable set by a test
// would change nothing. No server listens at the proxy's address, and the guard refuses its
// port. So a sender that uses the proxy delivers nothing.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	program, err := os.Executable()
	must(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestWhatIsSent$", "-test.v", "-test.timeout=1m")
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.EqualFold(name, "NO_PROXY") && name != "REQUEST_METHOD" { // net/http ignores proxies if these are set
			child.Env = append(child.Env, variable)
		}
	}
	for _, name := range proxyVariables {
		child.Env = append(child.Env, name+"=http://127.0.0.1:1")
	}
	output, err := child.CombinedOutput()
	if err != nil || !bytes.Contains(output, []byte("--- PASS: TestWhatIsSent")) {
		t.Errorf("with a proxy in the environment: %v\n%s", err, output)
	}
}
