package request

import "strings"

// KeyMax is the most bytes of an idempotency key.
const KeyMax = 256

// KeyForm describes the form of an idempotency key, for refusals.
const KeyForm = "1 to 256 printable ASCII characters without spaces (0x21 to 0x7E)"

// IsKey reports whether s is an idempotency key: 1 to [KeyMax] bytes from 0x21 to 0x7E. Keys are
// compared byte by byte.
func IsKey(s string) bool {
	return s != "" && len(s) <= KeyMax && visible(s)
}

func visible(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < 0x21 || c > 0x7E })
}

// ParseKeyHeader reads the value of an Idempotency-Key header. A value that begins with a quote is a
// string of RFC 8941, section 3.3.3, as draft-ietf-httpapi-idempotency-key-header-07 has it: the
// quotes are not part of the key, and \" and \\ stand for a quote and a backslash. Any other value is
// the key itself, because most clients send it so.
func ParseKeyHeader(value string) (key string, ok bool) {
	if !strings.HasPrefix(value, `"`) {
		return value, IsKey(value)
	}
	var text strings.Builder
	for rest := value[1:]; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch {
		case c == '"':
			return text.String(), rest == "" && IsKey(text.String())
		case c != '\\':
			text.WriteByte(c)
		case rest == "" || rest[0] != '"' && rest[0] != '\\':
			return "", false
		default:
			text.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return "", false // the string does not end
}
