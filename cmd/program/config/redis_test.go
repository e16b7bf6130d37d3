package config

import (
	"strings"
	"testing"
)

// Problems with a Redis URL are reported without showing the URL.
func TestRedis(t *testing.T) {
	for _, good := range []string{"redis://h", "redis://h:6379/3", "rediss://user:hidden@h:6380/0", "redis://:hidden@[::1]:6379"} {
		c, settings := input{env: []string{"WATCHTOWER_REDIS=" + good}}.mustResolve(t)
		if c.Redis.Reveal() != good || strings.Contains(settings["redis"].Value, "hidden") {
			t.Errorf("%s is shown as %s", good, settings["redis"].Value)
		}
	}
	for _, bad := range []string{
		"hidden", "h:6379", "http://hidden", "redis://", "redis:///hidden", "redis://h/hidden", "redis://h/-1", "redis://h/0/hidden",
		"redis://h?password=hidden", "redis://a:hid%zzden@h", "redis://h:hidden", "unix:///hidden", "redis://h/99999999999",
	} {
		_, _, err := input{env: []string{"WATCHTOWER_REDIS=" + bad}}.resolve(t)
		if err == nil || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
