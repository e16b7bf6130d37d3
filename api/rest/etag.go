package rest

import "strings"

// Unchanged reports whether the client already has the version with this tag. It uses the weak
// comparison of RFC 9110, section 13.1.2.
func (r Request) Unchanged(tag string) bool {
	for _, field := range r.Header.Values("If-None-Match") {
		for given := range strings.SplitSeq(field, ",") {
			given = strings.TrimSpace(given)
			if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}

// Tagged sets headers that let the client cache the answer and revalidate it by its tag.
func (r Request) Tagged(tag string) {
	header := r.Answering()
	header.Set("ETag", tag)
	header.Set("Cache-Control", "private, no-cache")
}
