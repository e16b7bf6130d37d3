package jsonrpc

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The chain of a path is named by its number or by CAIP-2.
func TestPathByCAIP2(t *testing.T) {
	s := newStack(t)
	const call = `{"jsonrpc":"2.0","id":1,"method":"net_version"}`
	_, want, _ := s.post(fmt.Sprintf("/rpc/%d", testChain), call)
	if !strings.Contains(want, "result") {
		t.Fatal(want)
	}
	for _, name := range []string{fmt.Sprintf("eip155:%d", testChain), fmt.Sprintf("eip155%%3A%d", testChain)} {
		if status, got, _ := s.post("/rpc/"+name, call); status != http.StatusOK || got != want {
			t.Errorf("%s answered %d %s", name, status, got)
		}
	}
	for _, name := range []string{"near:testnet", "eip155:", "eip155:5", "eip155:0", "x:y:z", "eip155:%31"} {
		if status, got, _ := s.post("/rpc/"+name, call); strings.Contains(got, "result") || status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("%s answered %d %s", name, status, got)
		}
	}
}
