package notifier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tempo-watchtower/watchtower/domain/notice"
)

// A client with very many endpoints that answer too late, or never, delays no notice of
// another client: some of the worker's slots are never taken by it.
func TestSlowEndpointsOfAnotherClientDelayNothing(t *testing.T) {
	as := func(client string, keys ...notice.Key) (news []notice.News) {
		for _, k := range keys {
			news = append(news, notice.News{Key: k, Client: client, URL: "https://example.org/" + canary, Body: []byte(canary)})
		}
		return news
	}
	inWorld(t, asIs, func(t *testing.T, w *world) {
		var crowd []notice.Key
		for endpoint := byte(1); endpoint <= 100; endpoint++ {
			w.set(endpoint, timeout)
			for intent := range byte(4) {
				crowd = append(crowd, key(endpoint, intent, 1))
			}
		}
		check(t, w.queue.Enqueue(t.Context(), "notifier", 0, 1, as("crowd", crowd...)))
		w.at = 1
		w.wake()
		time.Sleep(time.Minute) // in which retries come to be due too
		for intent := range byte(10) {
			began := time.Now()
			k := key(200, intent, 1)
			check(t, w.queue.Enqueue(t.Context(), "notifier", w.at, w.at+1, as("victim", k)))
			w.at++
			w.wake()
			synctest.Wait()
			w.want(k, notice.Settled)
			if took := time.Since(began); took != 0 {
				t.Errorf("a notice waits for %s", took)
			}
			time.Sleep(7 * time.Second)
		}
		sent := 0
		for endpoint := byte(1); endpoint <= 100; endpoint++ {
			sent += len(w.to(endpoint))
		}
		if perSlot := sent / 6; perSlot < 6 { // of two minutes and ten seconds, by fifteen seconds
			t.Errorf("the crowd's are %d attempts", sent)
		}
	})
}
