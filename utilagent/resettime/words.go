package resettime

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader reads words from the beginning of a text.
type reader struct {
	rest string
	now  time.Time
	span bool // a length of time can follow
	only bool // nothing else can: "in 5:00" is no clock

	named    []string         // the parts of a point in time that are
	days     []func(day) bool // whether a day fits them
	clock    time.Time        // only the time of day counts
	midnight bool
	zone     *time.Location
	wrong    bool // something is named that is not understood
}

// day is a day, and how many days it is away.
type day struct {
	time.Time
	away int
}

// match takes what a pattern matches at the beginning, behind blanks; "": nothing.
func (r *reader) match(pattern string) string {
	rest := strings.TrimLeft(r.rest, " \t*`")
	found := regexp.MustCompile(`^(?i:` + pattern + `)`).FindString(rest)
	if found != "" {
		r.rest = rest[len(found):]
	}
	return strings.ToLower(found)
}

// word takes one of some words.
func (r *reader) word(words string) string {
	before := r.rest
	found := r.match(`[a-z]+`)
	if !slices.Contains(strings.Fields(words), found) {
		r.rest, found = before, ""
	}
	return found
}

// when reads a length of time, or a point in time.
func (r *reader) when() time.Time {
	for range 6 { // "again: at about"
		r.match(`[\s:·,="'~]+|[-–—]+\s+`)
		switch word := r.word("in after for wait the at on is will be about around approximately until time date again retry"); word {
		case "in", "after", "for", "wait":
			r.span, r.only = true, word == "in"
		case "at", "on", "until":
			r.span, r.only = false, false
		}
	}
	if d, ok := r.length(); ok {
		if !r.span || r.wrong {
			return time.Time{}
		}
		return after(d, r.now)
	}
	if number := r.match(`\d{10,13}\b`); number != "" {
		return epoch(number, r.now)
	}
	if r.only || !r.point() {
		return time.Time{}
	}
	return r.resolve()
}

// length reads a length of time in seconds, such as "2 hours and 5 minutes" or "1h2m3.5s".
func (r *reader) length() (sum float64, ok bool) {
	const units = `milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d|weeks?|w`
	for end := r.rest; ; {
		n := r.match(`\d+(?:\.\d+)?|(?:an?|one)\b`)
		unit := r.match(units)
		if n == "" || unit == "" || regexp.MustCompile(`^[a-zA-Z]`).MatchString(r.rest) {
			r.rest = end
			break
		}
		one := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 24 * 3600, 'w': 7 * 24 * 3600}[unit[0]]
		if unit == "ms" || strings.HasPrefix(unit, "mil") {
			one = 0.001
		}
		count, err := strconv.ParseFloat(n, 64)
		if err != nil {
			count = 1 // "an hour"
		}
		sum, ok, end = sum+count*one, true, r.rest
		r.match(`,?\s*and\b|,`)
	}
	// What follows can change it: "5 hours ago", "an hour and a half", "5 minutes - 10 minutes".
	r.wrong = ok && r.match(`(ago|half)\b|(at|to|or|and)\s+((an?|half)\b|\d)|[-–—+/]\s*\d|\d`) != ""
	return sum, ok
}

// point reads a point in time, its parts in any order, and looks at what follows it.
func (r *reader) point() bool {
	end := r.rest
	for r.part() {
		r.zoneName()
		end = r.rest
		r.match(`,`)
		r.word("at on of the")
	}
	r.rest = end
	r.wrong = r.wrong || r.midnight && len(r.days) > 0 // people disagree at which end of a day it is
	return !r.wrong && slices.Contains(r.named, "clock") && r.ends()
}

// forms are the parts of a point in time: "Monday", "2026-12-01", also before a T, "Dec 1st, 2026",
// "1 December", "3am", "3:40 p.m." and "15:40:30".
func forms() [][]string { // name, pattern, layouts
	const month, day, year = months, `\d{1,2}(?:st|nd|rd|th)?\b`, `(?:,?[ \t]+\d{4}\b)?`
	return [][]string{
		{"weekday", `[a-z]{3,9}\b\.?`, "Mon", "Monday"},
		{"date", `\d{4}-\d{2}-\d{2}(?:t|\b)`, "2006-01-02t", "2006-01-02"},
		{"date", month + `[ \t]*(?:the[ \t]+)?` + day + year, "Jan 2", "January 2", "Jan 2 2006", "January 2 2006"},
		{"date", day + `[ \t]+(?:of[ \t]+)?` + month + year, "2 Jan", "2 January", "2 Jan 2006", "2 January 2006"},
		{"clock", `(?:0?[1-9]|1[0-2])(?::\d{2}){0,2}\s*[ap]\.?\s?m\b\.?`, "3 pm", "3:04 pm", "3:04:05 pm"},
		{"clock", `\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?`, "15:04", "15:04:05"},
	}
}

// tidy returns a part as it is in a layout.
func tidy(text string) string {
	text = regexp.MustCompile(`(\d)(?:st|nd|rd|th)\b|\b(sep|tue|wed|thu)(?:t|s|rs?)\b\.?|\b(?:the|of)\b|,|([a-z])\.`).ReplaceAllString(text, "$1$2$3")
	text = regexp.MustCompile(`\s*([ap])\s?m$`).ReplaceAllString(text, " ${1}m")
	return strings.Join(strings.Fields(text), " ")
}

// part reads a part of a point in time; false: none is next.
func (r *reader) part() bool {
	switch w := r.word("today tomorrow midnight"); w {
	case "midnight":
		r.clock, r.midnight = time.Time{}, true
		return r.found("clock", nil)
	case "today", "tomorrow":
		away := strings.Index("today tomorrow", w) / 6
		return r.found("today", func(d day) bool { return d.away == away })
	}
	before := r.rest
	for _, form := range forms() {
		text := tidy(r.match(form[1]))
		for _, layout := range form[2:] {
			at, err := time.Parse(layout, text)
			switch {
			case err != nil:
				continue
			case form[0] == "clock":
				r.clock = at
				return r.found("clock", nil)
			case form[0] == "date":
				text = at.Format(layout)
			}
			return r.found(form[0], func(d day) bool { return strings.EqualFold(d.Format(layout), text) })
		}
		r.rest = before
	}
	return false
}

// found notes a part, and which days fit it. None is named twice, and a colon makes it another one.
func (r *reader) found(name string, fits func(day) bool) bool {
	r.wrong = r.wrong || slices.Contains(r.named, name) || strings.HasPrefix(r.rest, ":")
	r.named = append(r.named, name)
	if fits != nil {
		r.days = append(r.days, fits)
	}
	return true
}

// ends reports whether the point in time ends here: what follows it otherwise, such as an unknown zone or
// the end of a range, changes it.
func (r *reader) ends() bool {
	rest := strings.TrimLeft(r.rest, " \t*`")
	if regexp.MustCompile(`^(?:$|[\r\n;!?)\]}"'·∙•|<\\…]|[.,](?:\s|["')\\]|$)|[-–—]\s+[a-zA-Z])`).MatchString(rest) {
		return !regexp.MustCompile(`^(?:[,·∙–—-]\s*(?:[A-Z]{2,5}|(?i:pacific|eastern|central|mountain|local|your|next|last|this))\b|[,–—-]\s*\d)`).MatchString(rest)
	}
	if regexp.MustCompile(`^(?i:(?:or|and|to|then)\s+(?:(?:at|on|by|until)\s+)?(?:\d|midnight|noon|` + dayWords + `))`).MatchString(rest) {
		return false // one of several
	}
	return r.word("or and to if when for unless but you please visit upgrade with so then see contact use run while because as before by via we it try until") != ""
}
