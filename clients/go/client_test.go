package watchtower

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// service answers requests in place of a real service.
type service func(r *http.Request) (status int, header http.Header, body string)

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body := s(r)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func (s service) client() *Client {
	return &Client{URL: "http://service.example", HTTP: &http.Client{Transport: s}}
}

const busy = `{"status":503,"code":"unavailable","title":"not now","retryable":true}`

// Events waits for the time in Retry-After.
func TestEventsHeedRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, times := time.Now(), 0
		client := service(func(*http.Request) (int, http.Header, string) {
			if times++; times == 1 {
				return http.StatusServiceUnavailable, http.Header{"Retry-After": {"30"}}, busy
			}
			return http.StatusOK, nil, `{"id":"a","name":"tx.mined.v1","position":7}` + "\n"
		}).client()
		for e, err := range client.Events(t.Context(), EventFilter{}) {
			if err != nil || e.Position != 7 {
				t.Errorf("%+v, %v", e, err)
			}
			break
		}
		if waited := time.Since(began); times != 2 || waited < 30*time.Second || waited > 31*time.Second {
			t.Errorf("asked %d times within %s", times, waited)
		}
	})
}

// A stream that keeps breaking off at the same position is requested less and less often.
func TestEventsThatDoNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		times := 0
		client := service(func(*http.Request) (int, http.Header, string) {
			times++
			return http.StatusOK, nil, `{"position":0}` + "\n"
		}).client()
		for _, err := range client.Events(ctx, EventFilter{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if times < 5 || times > 20 { // at least 5 s apart in the end
			t.Errorf("asked %d times in a minute", times)
		}
	})
}

// Submit returns the results of accepted transactions, even if the service goes away before it
// has accepted all.
func TestSubmitTellsWhatWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		client := service(func(*http.Request) (int, http.Header, string) {
			if times++; times > 1 {
				return http.StatusServiceUnavailable, nil, busy
			}
			return http.StatusOK, nil, fmt.Sprintf(`{"results":[{"ok":true,"txHash":"0x01"},{"ok":false,"problem":%s}]}`, busy)
		}).client()
		results, err := client.Submit(t.Context(), 1, []byte{1}, []byte{2})
		if err != nil || len(results) != 2 || !results[0].OK || results[1].OK || results[1].Problem == nil {
			t.Errorf("%+v, %v", results, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if results, err := client.Submit(ctx, 1, []byte{1}); !errors.Is(err, context.Canceled) && !errors.As(err, new(*Problem)) || results != nil {
			t.Errorf("%+v, %v", results, err)
		}
	})
}

// The typed data equals the message that wallets sign, as shown in docs/howto/cancel.md.
func TestCancelTypedData(t *testing.T) {
	wish := Cancel{ChainID: 42431, Deployment: "payroll-eu", Sender: "0x5657118a2412d505c12c06f80720b3145e017a35",
		GroupID: "0xd715028283f5d21b334d705c63d765eb", Expires: time.Unix(1_800_000_000, 0)}
	const want = `{"domain":{"chainId":42431,"name":"Watchtower","version":"1"},` +
		`"message":{"deployment":"payroll-eu","expires":1800000000,"groupId":"0xd715028283f5d21b334d705c63d765eb","sender":"0x5657118a2412d505c12c06f80720b3145e017a35"},` +
		`"primaryType":"CancelGroup",` +
		`"types":{"CancelGroup":[{"name":"deployment","type":"string"},{"name":"sender","type":"address"},{"name":"groupId","type":"bytes16"},{"name":"expires","type":"uint64"}],` +
		`"EIP712Domain":[{"name":"name","type":"string"},{"name":"version","type":"string"},{"name":"chainId","type":"uint256"}]}}`
	if got, err := wish.TypedData(); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
