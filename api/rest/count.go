package rest

// CountElements counts the elements of the JSON array, or the members of the JSON object, that
// text begins with. It stops at most+1, decodes nothing and allocates nothing, so a batch is
// counted before work is done for it. Text need not be valid JSON: a decoder that stops at the
// first error has read no more elements than CountElements counts.
func CountElements(text []byte, most int) (n int) {
	depth, begun, quoted := 0, false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if quoted {
			switch c {
			case '\\':
				i++
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case ',':
			begun = begun && depth > 1
			continue
		case ']', '}':
			if depth--; depth <= 0 {
				return n
			}
			continue
		case '[', '{':
			if depth++; depth == 1 {
				continue
			}
		case '"':
			quoted = true
		}
		switch {
		case depth == 0: // neither an array nor an object
			return 0
		case !begun:
			begun = true
			if n++; n > most {
				return n
			}
		}
	}
	return n
}
