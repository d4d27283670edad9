package resettime

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cursor reads words from the beginning of a text.
type cursor struct {
	rest string
	now  time.Time
	span bool // a length of time can follow
	only bool // nothing else can: "in 5:00" is no clock

	year, month, day int // 0: not named
	weekday          int // 1 is Sunday; 0: not named
	days             int // from today, if relative
	relative         bool
	clock            []int // hour, minute, second
	midnight         bool
	zone             *time.Location
	wrong            bool // something is named that is not understood
}

// groups takes what a pattern matches at the beginning, behind blanks, and returns its groups; nil: nothing.
func (c *cursor) groups(pattern string) []string {
	rest := strings.TrimLeft(c.rest, " \t*`")
	m := regexp.MustCompile(`^(?i:` + pattern + `)`).FindStringSubmatch(rest)
	if m != nil {
		c.rest = rest[len(m[0]):]
	}
	return m
}

// match takes what a pattern matches; "": nothing.
func (c *cursor) match(pattern string) string {
	if m := c.groups(pattern); m != nil {
		return m[0]
	}
	return ""
}

// word takes one of some words.
func (c *cursor) word(words string) string {
	before := c.rest
	found := strings.ToLower(c.match(`[a-z]+`))
	if found == "" || !slices.Contains(strings.Fields(words), found) {
		c.rest, found = before, ""
	}
	return found
}

// when reads a length of time, or a point in time.
func (c *cursor) when() time.Time {
	for range 6 { // "again: at about"
		c.match(`[\s:·,="'~]+|[-–—]+\s+`)
		switch word := c.word("in after for wait the at on is will be about around approximately until time date again retry"); word {
		case "in", "after", "for", "wait":
			c.span, c.only = true, word == "in"
		case "at", "on", "until":
			c.span, c.only = false, false
		}
	}
	if d, ok := c.length(); ok {
		if !c.span || c.wrong {
			return time.Time{}
		}
		return after(d, time.Nanosecond, c.now)
	}
	if number := c.match(`\d{10,13}\b`); number != "" {
		return epoch(number, c.now)
	}
	if c.only || !c.point() {
		return time.Time{}
	}
	return c.resolve()
}

// length reads a length of time in nanoseconds, such as "2 hours and 5 minutes" or "1h2m3.5s".
func (c *cursor) length() (sum float64, ok bool) {
	const units = `milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d|weeks?|w`
	for end := c.rest; ; {
		n := c.match(`\d+(?:\.\d+)?|(?:an?|one)\b`)
		unit := strings.ToLower(c.match(units))
		if n == "" || unit == "" || regexp.MustCompile(`^[a-zA-Z]`).MatchString(c.rest) {
			c.rest = end
			break
		}
		one := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[unit[0]]
		if unit == "ms" || strings.HasPrefix(unit, "mil") {
			one = time.Millisecond
		}
		count, err := strconv.ParseFloat(n, 64)
		if err != nil {
			count = 1 // "an hour"
		}
		sum, ok, end = sum+count*float64(one), true, c.rest
		c.match(`,?\s*and\b|,`)
	}
	// What follows can change it: "5 hours ago", "an hour and a half", "5 minutes - 10 minutes".
	c.wrong = ok && c.match(`(ago|half)\b|(at|to|or|and)\s+((an?|half)\b|\d)|[-–—+/]\s*\d|\d`) != ""
	return sum, ok
}

// point reads a point in time, its parts in any order, and looks at what follows it.
func (c *cursor) point() bool {
	end := c.rest
	for range 8 {
		if !c.iso() && !c.monthDay() && !c.dayName() && !c.clockTime() {
			break
		}
		c.zoneName()
		end = c.rest
		c.match(`,`)
		c.word("at on of the")
	}
	c.rest = end
	if c.midnight && (c.month != 0 || c.relative || c.weekday != 0) {
		return false // people disagree at which end of a day it is
	}
	return !c.wrong && c.clock != nil && c.ends()
}

// iso reads "2026-12-01", also before a T.
func (c *cursor) iso() bool {
	found := c.match(`\d{4}-\d{2}-\d{2}(?:T|\b)`)
	if found != "" {
		c.date(number(found[:4]), number(found[5:7]), number(found[8:10]))
	}
	return found != ""
}

const months = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?`

// monthDay reads "Dec 1st, 2026" and "1 December".
func (c *cursor) monthDay() bool {
	const day, year = `(\d{1,2})(?:st|nd|rd|th)?\b`, `(?:,?[ \t]+(\d{4})\b)?`
	m := c.groups(months + `[ \t]*(?:the[ \t]+)?` + day + year)
	if m == nil {
		if m = c.groups(day + `[ \t]+(?:of[ \t]+)?` + months + year); m == nil {
			return false
		}
		m[1], m[2] = m[2], m[1]
	}
	c.wrong = c.wrong || strings.HasPrefix(c.rest, ":") && m[3] == "" // the day was an hour
	c.date(number(m[3]), 1+strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(m[1][:3]))/3, number(m[2]))
	return true
}

func (c *cursor) date(year, month, day int) {
	c.wrong = c.wrong || c.month != 0 || month < 1 || month > 12 || day < 1
	c.year, c.month, c.day = year, month, day
}

// dayName reads "Monday", "today" and "tomorrow".
func (c *cursor) dayName() bool {
	if name := c.word("today tomorrow"); name != "" {
		c.wrong = c.wrong || c.relative
		c.relative, c.days = true, strings.Index("today tomorrow", name)/6
		return true
	}
	name := c.match(`(sun|mon|tues?|wed(?:s|nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(day)?\b\.?`)
	if name == "" {
		return false
	}
	c.wrong = c.wrong || c.weekday != 0
	c.weekday = 1 + strings.Index("sunmontuewedthufrisat", strings.ToLower(name[:3]))/3
	return true
}

// clockTime reads "3am", "3:40 p.m.", "15:40:30" and "midnight".
func (c *cursor) clockTime() bool {
	before, taken := c.rest, c.clock != nil
	if c.word("midnight") != "" {
		c.clock, c.midnight, c.wrong = []int{0, 0, 0}, true, c.wrong || taken
		return true
	}
	m := c.groups(`(\d{1,2})(?::(\d{2})(?::(\d{2})(?:\.\d+)?)?)?\s*([ap]\.?\s?m\b\.?)?`)
	if m == nil || m[2]+m[4] == "" {
		c.rest = before
		return false
	}
	hour, minute, second := number(m[1]), number(m[2]), number(m[3])
	c.wrong = c.wrong || taken || hour > 23 || minute > 59 || second > 59 || m[4] != "" && (hour < 1 || hour > 12)
	if m[4] != "" {
		hour %= 12
	}
	if strings.HasPrefix(strings.ToLower(m[4]), "p") {
		hour += 12
	}
	c.clock = []int{hour, minute, second}
	return true
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits
	return n
}

// ends reports whether the point in time ends here: what follows it otherwise, such as an unknown zone or
// the end of a range, changes it.
func (c *cursor) ends() bool {
	rest := strings.TrimLeft(c.rest, " \t*`")
	if regexp.MustCompile(`^(?:$|[\r\n;!?)\]}"'·∙•|<\\…]|[.,](?:\s|["')\\]|$)|[-–—]\s+[a-zA-Z])`).MatchString(rest) {
		return !regexp.MustCompile(`^(?:[,·∙–—-]\s*(?:[A-Z]{2,5}|(?i:pacific|eastern|central|mountain|local|your|next|last|this))\b|[,–—-]\s*\d)`).MatchString(rest)
	}
	if regexp.MustCompile(`^(?i:(?:or|and|to|then)\s+(?:(?:at|on|by|until)\s+)?(?:\d|tomorrow|midnight|noon|(?:sun|mon|tues|wednes|thurs|fri|satur)day))`).MatchString(rest) {
		return false // one of several
	}
	return c.word("or and to if when for unless but you please visit upgrade with so then see contact use run while because as before by via we it try until") != ""
}
