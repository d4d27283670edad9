package react

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// deltas returns a call in pieces.
type deltas func(i int, c wanted) []string

// callPiece returns a piece of a call; arguments is JSON.
func callPiece(head, name, arguments string) string {
	if name != "" {
		name = fmt.Sprintf(`"name":%q,`, name)
	}
	return fmt.Sprintf(`{"tool_calls":[{%s"function":{%s"arguments":%s}}]}`, head, name, arguments)
}

// halves splits the arguments in the middle of a string.
func halves(args string) (a, b string) {
	at := len(`{"text":"0`)
	return quoted(args[:at]), quoted(args[at:])
}

func standard(i int, c wanted) []string {
	a, b := halves(c.args)
	return []string{
		callPiece(fmt.Sprintf(`"index":%d,"id":%q,"type":"function",`, i, c.id), c.name, `""`),
		callPiece(fmt.Sprintf(`"index":%d,`, i), "", a), callPiece(fmt.Sprintf(`"index":%d,`, i), "", b),
	}
}

func objects(i int, c wanted) []string {
	return []string{callPiece(fmt.Sprintf(`"index":%d,"id":%q,`, i, c.id), c.name, c.args)}
}

func sameIndex(_ int, c wanted) []string {
	return []string{callPiece(fmt.Sprintf(`"index":0,"id":%q,`, c.id), c.name, quoted(c.args))}
}

func noIDs(_ int, c wanted) []string {
	return []string{callPiece(`"index":0,"id":"",`, c.name, quoted(c.args))}
}

func noIDsNoIndex(_ int, c wanted) []string {
	a, b := halves(c.args)
	return []string{callPiece("", c.name, a), callPiece("", "", b)}
}

func oneID(i int, c wanted) []string {
	return []string{callPiece(fmt.Sprintf(`"index":%d,"id":"call",`, i), c.name, quoted(c.args))}
}

func nameAgain(i int, c wanted) []string {
	a, b := halves(c.args)
	head := fmt.Sprintf(`"index":%d,"id":%q,`, i, c.id)
	return []string{callPiece(head, c.name, a), callPiece(head, c.name, b)}
}

// interleaved sends the second halves later; see stream.
func interleaved(i int, c wanted) []string {
	a, b := halves(c.args)
	return []string{
		callPiece(fmt.Sprintf(`"index":%d,"id":%q,`, i, c.id), c.name, a),
		"later " + callPiece(fmt.Sprintf(`"index":%d,`, i), "", b),
	}
}

// stream writes the reply in pieces.
func (s said) stream(d deltas) http.HandlerFunc { return s.written("", "\n\n", d) }

// with streams the reply with modified arguments.
func (s said) with(change func(args string) string) http.HandlerFunc {
	return s.stream(func(i int, c wanted) []string {
		return []string{callPiece(fmt.Sprintf(`"index":%d,"id":%q,`, i, c.id), c.name, quoted(change(c.args)))}
	})
}

// written writes the reply in pieces, each between two texts.
func (s said) written(before, after string, d deltas) http.HandlerFunc {
	list := []string{`{"role":"assistant","content":""}`, `{"content":` + quoted(s.text) + `}`}
	var later []string
	for i, c := range s.calls {
		for _, piece := range d(i, c) {
			if rest, ok := strings.CutPrefix(piece, "later "); ok {
				later = append(later, rest)
				continue
			}
			list = append(list, piece)
		}
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range append(list, later...) {
			_, _ = io.WriteString(w, before+"data: "+piece(delta, "")+after)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, before+"data: "+piece(`{}`, "stop")+after)
		_, _ = io.WriteString(w, before+`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`+after)
	}
}

// whole writes the complete reply; content is JSON.
func (s said) whole(content string) http.HandlerFunc {
	var calls []string
	for _, c := range s.calls {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.id, c.name, quoted(c.args)))
	}
	list := ""
	if calls != nil {
		list = `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	return fail(200, fmt.Sprintf(`{"choices":[{"message":{"role":"assistant","content":%s%s},"finish_reason":null}]}`, content, list))
}

// orNull returns null if the reply has calls, and otherwise its text.
func (s said) orNull(null string) string {
	if s.calls != nil {
		return null
	}
	return quoted(s.text)
}
