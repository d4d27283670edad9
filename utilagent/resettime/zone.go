package resettime

import (
	"regexp"
	"strings"
	"time"
)

// zoneName reads a zone behind a point in time: "(Europe/Zurich)", "UTC", "+02:00". A name is read as it is
// written; a word that is no zone is judged by [cursor.ends].
func (c *cursor) zoneName() {
	const names = `\(([^()]{1,60})\)|([a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)+|(?:utc|gmt)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|` +
		`[+-]\d{2}:?\d{2}\b|(?-i:Z\b)|(?:your )?local(?: time)?\b)`
	if c.clock == nil || c.match(`\(in \d[^()]{1,40}\)`) != "" { // the same once more, as a length
		return
	}
	if m := c.groups(names); m != nil {
		zone, ok := zoneOf(strings.TrimSpace(m[1]+m[2]), c.now)
		c.wrong, c.zone = c.wrong || !ok || c.zone != nil, zone
		c.match(`time\b`)
	}
}

// zoneOf returns a zone: a name of the zone database, UTC, an offset, or the local one. An abbreviation
// such as CST stands for several zones, so it is none.
func zoneOf(name string, now time.Time) (*time.Location, bool) {
	switch lower := strings.ToLower(name); lower {
	case "utc", "gmt", "z", "utc time", "gmt time":
		return time.UTC, true
	case "local", "local time", "your local time":
		return now.Location(), true
	}
	if m := regexp.MustCompile(`^(?i:utc|gmt)?([+-])(\d{1,2}):?(\d{2})?$`).FindStringSubmatch(name); m != nil {
		hours, minutes := number(m[2]), number(m[3])
		offset := hours*3600 + minutes*60
		if m[1] == "-" {
			offset = -offset
		}
		return time.FixedZone(name, offset), hours <= 14 && minutes < 60
	}
	if !strings.Contains(name, "/") {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// resolve returns the point in time that was read: the next one that fits.
func (c *cursor) resolve() time.Time {
	zone := c.zone
	if zone == nil {
		zone = c.now.Location()
	}
	year, month, today := c.now.In(zone).Date()
	for n := -1; n <= 366; n++ {
		d := time.Date(year, month, today+n, 0, 0, 0, 0, time.UTC)
		if c.relative && n != c.days || c.weekday != 0 && int(d.Weekday()) != c.weekday-1 || c.year != 0 && d.Year() != c.year ||
			c.month != 0 && (d.Month() != time.Month(c.month) || d.Day() != c.day) {
			continue
		}
		at, ok := onClock(d, c.clock, zone)
		if left := at.Sub(c.now); left > -grace {
			if !ok || left > longest {
				return time.Time{}
			}
			return at
		}
	}
	return time.Time{}
}

// onClock returns when a clock in a zone shows a time on a day; not ok: never, or twice, as the
// summer time changes.
func onClock(day time.Time, clock []int, zone *time.Location) (time.Time, bool) {
	year, month, d := day.Date()
	at := time.Date(year, month, d, clock[0], clock[1], clock[2], 0, zone)
	shows := func(t time.Time) bool {
		t = t.In(zone)
		return t.Day() == d && t.Hour() == clock[0] && t.Minute() == clock[1]
	}
	if !shows(at) {
		return at, false
	}
	_, own := at.Zone()
	for _, other := range []time.Time{at.Add(-24 * time.Hour), at.Add(24 * time.Hour)} {
		_, offset := other.Zone()
		if offset != own && shows(at.Add(time.Duration(own-offset)*time.Second)) {
			return at, false
		}
	}
	return at, true
}
