package watchtower

import (
	"context"
	"net/http"
)

// Client calls one service that delivers signed transactions. Only URL is required. Several
// goroutines may use a Client; its fields must not change meanwhile.
type Client struct {
	URL  string // of the service, such as https://watchtower.example
	Key  string // an API key, if the service requires one
	HTTP *http.Client
	// Tries is the maximum number of tries for one request; 0 means [DefaultTries]. It does not
	// limit [Client.Events].
	Tries int
}

func (c *Client) caller() caller { return caller{url: c.URL, key: c.Key, http: c.HTTP, most: c.Tries} }

// call makes a request, with retries, and decodes the answer.
func (c *Client) call(ctx context.Context, r request, into any) error {
	return c.caller().call(ctx, r, into)
}

func (c *Client) tries() int { return c.caller().tries() }

// MarkStale records that a transaction's nonce is used up on chain, for an owner who has used it
// for something else. The service asks the chain, and refuses while the nonce is free.
func (c *Client) MarkStale(ctx context.Context, hash string) (Transaction, error) {
	var t Transaction
	err := c.call(ctx, request{method: http.MethodDelete, path: pathOf(hash)}, &t)
	return t, err
}

// Contract returns the service's OpenAPI document, as YAML.
func (c *Client) Contract(ctx context.Context) (string, error) {
	return c.caller().text(ctx, "/openapi.yaml")
}

// ContractJSON returns the service's OpenAPI document, as JSON.
func (c *Client) ContractJSON(ctx context.Context) (string, error) {
	return c.caller().text(ctx, "/openapi.json")
}

// Docs returns the service's OpenAPI document, as a web page.
func (c *Client) Docs(ctx context.Context) (string, error) {
	return c.caller().page(ctx, "/docs")
}

// Problem explains a code of a problem.
func (c *Client) Problem(ctx context.Context, code string) (ProblemKind, error) {
	return c.caller().problem(ctx, code)
}
