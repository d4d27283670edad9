package htmlpage

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Text is a stranger's text as far as it is shown.
type Text struct {
	Body string
	Cut  int    // bytes that are left out in the middle
	Link string // where all of it is; "": nowhere
}

// TextOf cleans a text and cuts its middle out, so that at most most bytes are left.
func TextOf(s string, most int) Text {
	if len(s) <= most {
		return Text{Body: plaintext.Escape(s)}
	}
	head, tail := most*3/4, len(s)-most/4
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return Text{Body: plaintext.Escape(s[:head]) + "\n\n[…]\n\n" + plaintext.Escape(s[tail:]), Cut: tail - head}
}

// Empty reports whether there is nothing to show.
func (t Text) Empty() bool { return strings.TrimSpace(t.Body) == "" }

// Scrolls reports whether a text may be longer than the place that it gets, so that the
// keyboard must be able to go there.
func (t Text) Scrolls() bool { return len(t.Body) > 800 || strings.Count(t.Body, "\n") > 20 }

// ValueText is a JSON value as YAML; a text is itself.
func ValueText(v any, most int) Text {
	if v == nil {
		return Text{}
	}
	if s, ok := v.(string); ok {
		return TextOf(s, most)
	}
	var b bytes.Buffer
	if err := render.Print(&b, render.YAML, v, nil); err != nil { // it came from JSON
		return Text{Body: plaintext.Escape(err.Error())}
	}
	return TextOf(strings.TrimRight(b.String(), "\n"), most)
}

// Line is a stranger's name or title: one line of at most most characters.
func Line(s string, most int) string {
	const bytesEach = 4
	s = plaintext.Line(s[:min(len(s), most*bytesEach)])
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return strings.TrimSpace(s)
}

// LongestTitle is how many characters of a title, and Longest of a name, are shown.
const (
	LongestTitle = 200
	Longest      = 80
)

// When is a time as people read it, and as programs do.
type When struct{ Text, Machine string }

// WhenOf is a time in the zone of now; the zero value if it is not known.
func WhenOf(ms *int64, now time.Time) When {
	if ms == nil || *ms <= 0 {
		return When{}
	}
	at := time.UnixMilli(*ms).In(now.Location())
	return When{Text: at.Format("2006-01-02 15:04"), Machine: at.Format(time.RFC3339)}
}

// costText is what a step has cost.
func costText(u *protocol.Usage) string {
	switch {
	case !u.IsPriced():
		return "cost unknown"
	case u.CostUSD == nil, u.Turns == 0 && u.Tokens() == 0:
		return "no cost"
	}
	return protocol.Dollars(*u.CostUSD)
}

func tokensText(u *protocol.Usage) string {
	switch {
	case !u.Counted():
		return "tokens unknown"
	case u.Turns == 0 && u.Tokens() == 0:
		return "no model"
	}
	return render.Count(int(u.Tokens()), "token")
}
