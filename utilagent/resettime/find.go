// Package resettime parses the time at which a provider's limit resets, from text that a program or an
// endpoint printed. All such times are parsed here. It never guesses: if it does not understand every part,
// such as an unknown zone, it returns no time.
package resettime

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxText     = 16 << 10 // a message says it in one line; anything longer is a log
	maxMentions = 32
	nearby      = 100 // bytes before a match that can change its meaning: part of a sentence

	// grace allows a time without a date to be in the past, because a message is not read in the second in
	// which it was written.
	grace = 5 * time.Minute
	// same is the tolerance between two mentions of one time: some have no seconds.
	same = 2 * time.Minute
)

// fields are the names of fields and headers that precede a reset time, and mentions are words that do.
const (
	fields = `(?i)\b(retry[-_]?after|retry[-_]?delay|[a-z_-]{0,40}resets?[-_]?(?:at|in|time(?:stamp)?|delay)|anthropic-ratelimit-[a-z-]{1,30}-reset)` +
		`[-_]?(ms|seconds|secs?|s)?["']?[ \t]*[:=][ \t]*["']?([^"'\r\n{}]{1,60})`
	mentions = `(?i)\b(resets?|renew(?:s|ed)?|refresh(?:es|ed)?|regain[ \t]+access|lifted|again|retry|wait|until|(?:available|valid|access)[ \t]+until|available|back)\b`
	epochs   = `\|(\d{10})\b` // older versions of Claude Code
	// others matches phrases about another time: "was reset at", "available until".
	others = `(?i)\b(?:(?:last|was|were|been)[ \t]+[a-z]+|(not[ \t]+)?(?:available|valid|access)[ \t]+until)$`
	// dayBefore matches a day that applies to the following clock time: "on Monday it resets at".
	dayBefore = `(?i)\b(?:` + dayWords + `|` + months + `[ \t]*\d{1,2}(?:st|nd|rd|th)?)\b[^.;·|\d\r\n]{0,60}$`
	dayWords  = `tomorrow|(?:sun|mon|tues|wednes|thurs|fri|satur)day`
	months    = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\b\.?`
)

// In returns the reset time in a text, or the zero time if the text contains none, several, or one that is
// not understood. Named fields take precedence over words. A time without a zone is in the zone of now, and
// one without a date is the next one.
func In(text string, now time.Time) time.Time {
	text = strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(text[max(0, len(text)-maxText):])
	var found time.Time
	for _, m := range regexp.MustCompile(fields).FindAllStringSubmatch(text, maxMentions) {
		if at := value(m[1], m[2], m[3], now); !at.IsZero() {
			found = at // the latest of several
		}
	}
	if m := regexp.MustCompile(epochs).FindStringSubmatch(text); m != nil && found.IsZero() {
		found = epoch(m[1], now)
	}
	if !found.IsZero() {
		return found
	}
	for _, m := range regexp.MustCompile(mentions).FindAllStringIndex(text, maxMentions) {
		r := reader{rest: text[m[1]:], now: now, span: strings.EqualFold(text[m[0]:m[1]], "wait")}
		switch at := r.when(); {
		case at.IsZero() || r.elsewhere(text[max(0, m[0]-nearby):m[0]], text[m[0]:m[1]]):
		case found.IsZero():
			found = at
		case at.Sub(found).Abs() > same:
			return time.Time{} // ambiguous
		}
	}
	return found
}

// elsewhere reports whether a phrase, or the text before it, refers to another time.
func (r *reader) elsewhere(before, mention string) bool {
	if m := regexp.MustCompile(others).FindStringSubmatch(before + mention); m != nil && m[1] == "" {
		return true
	}
	return len(r.named) > 0 && len(r.days) == 0 && regexp.MustCompile(dayBefore).MatchString(before)
}

// Header returns the reset time in the headers of a response, which get looks up, or the zero time.
func Header(get func(name string) string, now time.Time) time.Time {
	for _, h := range [][3]string{ // the other header that must be present, and its value
		{"Retry-After-Ms"},
		{"Retry-After"},
		{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests", "0"},
		{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", "0"},
		{"Anthropic-Ratelimit-Unified-Reset", "Anthropic-Ratelimit-Unified-Status", "rejected"},
	} {
		at := value("", strings.TrimPrefix(h[0], "Retry-After-"), get(h[0]), now)
		if !at.IsZero() && (h[1] == "" || get(h[1]) == h[2]) {
			return at
		}
	}
	return time.Time{}
}

// value parses the value of a field: seconds, milliseconds, a numeric timestamp, or words.
func value(name, unit, text string, now time.Time) time.Time {
	r := reader{rest: text, now: now, span: true, only: regexp.MustCompile(`(?i)(in|delay)$`).MatchString(name)}
	number := r.match(`-?\d+(?:\.\d+)?`)
	if number == "" || r.match(`[^ \t,;\])]`) != "" {
		r.rest = text
		return r.when()
	}
	n, err := strconv.ParseFloat(number, 64)
	if at := epoch(number, now); err != nil || !at.IsZero() {
		return at
	}
	isPoint := regexp.MustCompile(`(?i)(at|reset|time(stamp)?)$`).MatchString(name)
	switch {
	case isPoint && unit == "", n < 0:
		return time.Time{}
	case strings.EqualFold(unit, "ms"):
		n /= 1000
	}
	return after(n, now)
}

// epoch parses seconds or milliseconds since 1970, if the time is within a year.
func epoch(s string, now time.Time) time.Time {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	for _, at := range []time.Time{time.Unix(n, 0), time.UnixMilli(n)} {
		if left := at.Sub(now); left > -grace && left <= longest {
			return at
		}
	}
	return time.Time{}
}

// longest bounds how far away a reset can be: limits last a month at most, so a longer time is some other
// number.
const longest = 366 * 24 * time.Hour

// after returns the time some seconds from now.
func after(seconds float64, now time.Time) time.Time {
	if !(seconds >= 0 && seconds <= longest.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

// reader parses words from the beginning of a text.
type reader struct {
	rest string
	now  time.Time
	span bool // a duration can follow
	only bool // only a duration can follow: "in 5:00" is not a clock time

	named    []string         // the parts of a date and time found so far
	days     []func(day) bool // predicates for the day
	clock    time.Time        // only the time of day is used
	midnight bool
	zone     *time.Location
	wrong    bool // some part is not understood
}

// day is a day and its distance in days.
type day struct {
	time.Time
	away int
}

// match consumes what a pattern matches at the beginning, after blanks, and returns it, or "".
func (r *reader) match(pattern string) string {
	rest := strings.TrimLeft(r.rest, " \t*`")
	found := regexp.MustCompile(`^(?i:` + pattern + `)`).FindString(rest)
	if found != "" {
		r.rest = rest[len(found):]
	}
	return strings.ToLower(found)
}

// word consumes one of some words.
func (r *reader) word(words string) string {
	before := r.rest
	found := r.match(`[a-z]+`)
	if !slices.Contains(strings.Fields(words), found) {
		r.rest, found = before, ""
	}
	return found
}

// when parses a duration or a point in time.
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

// length parses a duration in seconds, such as "2 hours and 5 minutes" or "1h2m3.5s".
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
	// The following text can change the meaning: "5 hours ago", "an hour and a half", "5 minutes - 10
	// minutes".
	r.wrong = ok && r.match(`(ago|half)\b|(at|to|or|and)\s+((an?|half)\b|\d)|[-–—+/]\s*\d|\d`) != ""
	return sum, ok
}

// point parses a point in time, with its parts in any order, and checks what follows.
func (r *reader) point() bool {
	end := r.rest
	for r.part() {
		r.zoneName()
		end = r.rest
		r.match(`,`)
		r.word("at on of the")
	}
	r.rest = end
	r.wrong = r.wrong || r.midnight && len(r.days) > 0 // it is ambiguous to which day midnight belongs
	return !r.wrong && slices.Contains(r.named, "clock") && r.ends()
}

// forms returns the parts of a point in time: "Monday", "2026-12-01", also before a T, "Dec 1st, 2026", "1
// December", "3am", "3:40 p.m." and "15:40:30".
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

// tidy returns a part in the form used in layouts.
func tidy(text string) string {
	text = regexp.MustCompile(`(\d)(?:st|nd|rd|th)\b|\b(sep|tue|wed|thu)(?:t|s|rs?)\b\.?|\b(?:the|of)\b|,|([a-z])\.`).ReplaceAllString(text, "$1$2$3")
	text = regexp.MustCompile(`\s*([ap])\s?m$`).ReplaceAllString(text, " ${1}m")
	return strings.Join(strings.Fields(text), " ")
}

// part parses one part of a point in time. It returns false if there is none.
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

// found records a part and the days that match it. A repeated part or a following colon is an error.
func (r *reader) found(name string, fits func(day) bool) bool {
	r.wrong = r.wrong || slices.Contains(r.named, name) || strings.HasPrefix(r.rest, ":")
	r.named = append(r.named, name)
	if fits != nil {
		r.days = append(r.days, fits)
	}
	return true
}

// ends reports whether the point in time ends here. Other text after it, such as an unknown zone or the end
// of a range, changes its meaning.
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

// zoneName parses a zone after a point in time: "(Europe/Zurich)", "UTC", "+02:00". Names are case-sensitive;
// [reader.ends] handles a word that is not a zone.
func (r *reader) zoneName() {
	if !slices.Contains(r.named, "clock") || r.match(`\(in \d[^()]{1,40}\)`) != "" { // the same time repeated as a duration
		return
	}
	before := r.rest
	if r.match(`\([^()]{1,60}\)|[a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)+|(?:utc|gmt)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|`+
		`[+-]\d{2}:?\d{2}\b|(?-i:Z\b)|(?:your )?local(?: time)?\b`) != "" {
		zone, ok := zoneOf(strings.Trim(before[:len(before)-len(r.rest)], " \t*`()"), r.now)
		r.wrong, r.zone = r.wrong || !ok || r.zone != nil, zone
		r.match(`time\b`)
		if regexp.MustCompile(`[+-]\d{4}$`).MatchString(strings.TrimSuffix(before, r.rest)) {
			r.match(`(?-i:[A-Z]{3,5})\b`) // format of Go's time.String: the offset counts
		}
	}
}

// zoneOf returns the location for a name in the zone database, UTC, an offset, or the local zone.
// Abbreviations such as CST are ambiguous, so they are rejected.
func zoneOf(name string, now time.Time) (*time.Location, bool) {
	lower := strings.ToLower(name)
	switch lower {
	case "utc", "gmt", "z", "utc time", "gmt time":
		return time.UTC, true
	case "local", "local time", "your local time":
		return now.Location(), true
	}
	offset := strings.TrimPrefix(strings.TrimPrefix(lower, "utc"), "gmt")
	offset = regexp.MustCompile(`^([+-])(\d)(:|$)`).ReplaceAllString(offset, "${1}0$2$3")
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if at, err := time.Parse(layout, offset); err == nil {
			_, seconds := at.Zone()
			return time.FixedZone(name, seconds), max(seconds, -seconds) < 15*3600
		}
	}
	if !strings.Contains(name, "/") {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// resolve returns the parsed point in time: the next one that matches.
func (r *reader) resolve() time.Time {
	zone := r.zone
	if zone == nil {
		zone = r.now.Location()
	}
	year, month, today := r.now.In(zone).Date()
	for n := -1; n <= 366; n++ {
		d := day{time.Date(year, month, today+n, r.clock.Hour(), r.clock.Minute(), r.clock.Second(), 0, time.UTC), n}
		if slices.ContainsFunc(r.days, func(fits func(day) bool) bool { return !fits(d) }) {
			continue
		}
		at, ok := shown(d.Time, zone)
		if left := at.Sub(r.now); left > -grace {
			if !ok || left > longest {
				return time.Time{}
			}
			return at
		}
	}
	return time.Time{}
}

// shown returns the instant at which a clock in a zone shows a time, given in UTC. ok is false if that
// happens never or twice, because of daylight saving time.
func shown(clock time.Time, zone *time.Location) (at time.Time, ok bool) {
	year, month, day := clock.Date()
	at = time.Date(year, month, day, clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
	times := 0
	for shift := -2 * time.Hour; shift <= 2*time.Hour; shift += 30 * time.Minute { // no clock changes by more, or in other steps
		if at.Add(shift).Format(time.DateTime) == clock.Format(time.DateTime) {
			times++
		}
	}
	return at, times == 1
}
