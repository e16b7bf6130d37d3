package eventlog

import (
	"encoding/hex"
	"math"
	"time"
)

// Scan parses JSON in the exact form that encoding/json writes: no spaces, members in the order
// of the struct's fields. It serves decoders that are faster than reflection. It gives up on any
// other form, which is then decoded as usual JSON (see [Quick]). So its results must be correct,
// but it may refuse valid JSON.
type Scan struct {
	rest  []byte
	lost  bool // the input was not of this form; all later reads give zero
	first bool // no member of the current object has been read
}

// NewScan returns a scan of data.
func NewScan(data []byte) *Scan { return &Scan{rest: data} }

// Done reports whether all data was read and had this form.
func (s *Scan) Done() bool { return !s.lost && len(s.rest) == 0 }

// Lost reports whether the scan gave up.
func (s *Scan) Lost() bool { return s.lost }

// GiveUp ends the scan: its results must not be used.
func (s *Scan) GiveUp() { s.lost, s.rest = true, nil }

// Literal reads exactly this text.
func (s *Scan) Literal(text string) {
	if !s.Next(text) {
		s.GiveUp()
	}
}

// Next reads this text if the input continues with it.
func (s *Scan) Next(text string) bool {
	if len(s.rest) < len(text) || string(s.rest[:len(text)]) != text {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

// Open reads the start of an object.
func (s *Scan) Open() { s.Literal("{"); s.first = true }

// Close reads the end of an object.
func (s *Scan) Close() { s.Literal("}"); s.first = false }

// Member reads a member's name up to its value, if it comes next. name includes the quotes and
// the colon, as in `"at":`.
func (s *Scan) Member(name string) bool {
	if s.first {
		if s.Next(name) {
			s.first = false
			return true
		}
		return false
	}
	if len(s.rest) <= len(name) || s.rest[0] != ',' || string(s.rest[1:len(name)+1]) != name {
		return false
	}
	s.rest = s.rest[len(name)+1:]
	return true
}

// Must reads a required member's name.
func (s *Scan) Must(name string) {
	if !s.Member(name) {
		s.GiveUp()
	}
}

// At reads the time and the end of the object: the last member of every event.
func (s *Scan) At() time.Time {
	s.Must(`"at":`)
	at := s.Time()
	s.Close()
	return at
}

// Optional reads a member into a new T, or returns nil if the member does not come next.
func Optional[T any](s *Scan, name string, read func(*T)) *T {
	if !s.Member(name) {
		return nil
	}
	value := new(T)
	read(value)
	return value
}

// OptionalText reads a string, or returns the empty one if the member does not come next.
func OptionalText[T ~string](s *Scan, name string) (text T) {
	if s.Member(name) {
		text = T(s.Text())
	}
	return text
}

// Uint reads a number of at most the given bits.
func (s *Scan) Uint(bits int) uint64 {
	n, i := uint64(0), 0
	for ; i < len(s.rest) && i < 19 && '0' <= s.rest[i] && s.rest[i] <= '9'; i++ { // 19 digits cannot overflow
		n = n*10 + uint64(s.rest[i]-'0')
	}
	if i == 0 || i > 1 && s.rest[0] == '0' || i < len(s.rest) && continuesNumber(s.rest[i]) || bits < 64 && n>>bits != 0 {
		s.GiveUp()
		return 0
	}
	s.rest = s.rest[i:]
	return n
}

func continuesNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == 'e' || c == 'E'
}

// Int reads an integer.
func (s *Scan) Int() int64 {
	negative := s.Next("-")
	n := s.Uint(64)
	if n > math.MaxInt64 {
		s.GiveUp()
		return 0
	}
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// Bool reads true or false.
func (s *Scan) Bool() bool {
	if s.Next("true") {
		return true
	}
	s.Literal("false")
	return false
}

// Text reads a string of printable ASCII without escapes.
func (s *Scan) Text() string { return string(s.text()) }

func (s *Scan) text() []byte {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		s.GiveUp()
		return nil
	}
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			found := s.rest[1:i]
			s.rest = s.rest[i+1:]
			return found
		case c < ' ' || c > '~' || c == '\\':
			s.GiveUp()
			return nil
		}
	}
	s.GiveUp()
	return nil
}

// Hex reads a string of 0x and hex digits that fill `into` exactly.
func (s *Scan) Hex(into []byte) {
	text := s.text()
	if len(text) != 2+2*len(into) || text[0] != '0' || text[1] != 'x' {
		s.GiveUp()
		return
	}
	if _, err := hex.Decode(into, text[2:]); err != nil {
		s.GiveUp()
	}
}

// Bytes reads a string of 0x and any number of pairs of hex digits; nil if there are none.
func (s *Scan) Bytes() []byte {
	text := s.text()
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		s.GiveUp()
		return nil
	}
	if len(text) == 2 {
		return nil
	}
	found := make([]byte, len(text)/2-1)
	if n, err := hex.Decode(found, text[2:]); err != nil || n != len(found) {
		s.GiveUp()
		return nil
	}
	return found
}

// ShortHex reads a string of 0x and at least one hex digit, with leading zeros left out, into the
// end of `into`.
func (s *Scan) ShortHex(into []byte) {
	text := s.text()
	if len(text) < 3 || len(text) > 2+2*len(into) || text[0] != '0' || text[1] != 'x' {
		s.GiveUp()
		return
	}
	text = text[2:]
	clear(into)
	if len(text)%2 == 1 { // an odd digit
		var pair [1]byte
		if _, err := hex.Decode(pair[:], []byte{'0', text[0]}); err != nil {
			s.GiveUp()
			return
		}
		into[len(into)-len(text)/2-1] = pair[0]
		text = text[1:]
	}
	if _, err := hex.Decode(into[len(into)-len(text)/2:], text); err != nil {
		s.GiveUp()
	}
}

// Time reads an RFC 3339 time in UTC.
func (s *Scan) Time() time.Time {
	text := s.text()
	// 2026-11-21T03:04:05, an optional fraction, Z
	if len(text) < 20 || text[len(text)-1] != 'Z' || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		s.GiveUp()
		return time.Time{}
	}
	year, month, day := s.digits(text[0:4]), s.digits(text[5:7]), s.digits(text[8:10])
	hour, minute, second := s.digits(text[11:13]), s.digits(text[14:16]), s.digits(text[17:19])
	nanoseconds := 0
	if fraction := text[19 : len(text)-1]; len(fraction) > 0 {
		if fraction[0] != '.' || len(fraction) < 2 || len(fraction) > 10 {
			s.GiveUp()
			return time.Time{}
		}
		nanoseconds = s.digits(fraction[1:])
		for range 10 - len(fraction) {
			nanoseconds *= 10
		}
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanoseconds, time.UTC)
	if s.lost || month > 12 || hour > 23 || minute > 59 || second > 59 || t.Day() != day || int(t.Month()) != month {
		s.GiveUp()
		return time.Time{}
	}
	return t
}

func (s *Scan) digits(text []byte) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' {
			s.GiveUp()
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// Quick is [As] with a fast decoder that is tried first. The fast decoder must agree with the
// JSON decoder, and give up on input that it does not handle or does not read to the end.
func Quick[E any, T any](name string, quick func(*Scan) T) Shape[E] {
	shape := As[E, T](name)
	slow := shape.decode
	shape.decode = func(data []byte) (E, error) {
		s := NewScan(data)
		if fact := quick(s); s.Done() {
			return any(fact).(E), nil
		}
		return slow(data)
	}
	return shape
}
