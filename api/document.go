package api

// Document reads one JSON document in one pass, told at each place what must stand
// there. It refuses what encoding/json lets through or mends: a name that occurs twice
// or in another case, a name nobody asked for, null for a value, invalid UTF-8.
type Document struct{ r reader }

// NewDocument makes what reads a document.
func NewDocument(data []byte) *Document { return &Document{reader{data: data}} }

// Member reads the value of one member of an object.
type Member struct {
	Name     string
	Read     func() error
	Optional bool
}

// Whole reads the document by what reads its value, and sees to it that nothing follows.
func (d *Document) Whole(read func() error) error { return d.r.whole(read) }

// Object reads an object that has each of these members, once at most, and no other.
func (d *Document) Object(members ...Member) error {
	all, needed := make([]member, len(members)), make([]bool, len(members))
	for i, m := range members {
		all[i], needed[i] = member{m.Name, m.Read}, !m.Optional
	}
	return d.r.members(all, needed)
}

// Map reads an object whose names are the client's own, each once.
func (d *Document) Map(read func(name string) error) error { return d.r.entries(read) }

// IsList reports whether a list is what comes next.
func (d *Document) IsList() bool {
	d.r.skipSpace()
	return d.r.peek() == '['
}

// Count counts the elements of the list that comes next, up to most+1, and decodes none.
func (d *Document) Count(most int) int { return CountElements(d.r.data[d.r.at:], most) }

// List reads a list; read is called for each of its elements.
func (d *Document) List(read func(i int) error) error { return d.r.list(read) }

// Text reads a string.
func (d *Document) Text() (string, error) {
	text, err := d.r.string()
	return string(text), err
}

// Number reads a whole number of up to 64 bits, in plain digits.
func (d *Document) Number() (uint64, error) { return d.r.uint64() }

// Flag reads true or false.
func (d *Document) Flag() (bool, error) { return d.r.bool() }

// Wrong refuses what is JSON, but not what the request is made of, and says where.
func (d *Document) Wrong(format string, args ...any) error { return d.r.wrong(format, args...) }
