package resettime

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// zoneName reads a zone behind a point in time: "(Europe/Zurich)", "UTC", "+02:00". A name is read as it is
// written; a word that is no zone is judged by [reader.ends].
func (r *reader) zoneName() {
	if !slices.Contains(r.named, "clock") || r.match(`\(in \d[^()]{1,40}\)`) != "" { // the same once more, as a length
		return
	}
	before := r.rest
	if r.match(`\([^()]{1,60}\)|[a-z][a-z0-9_+-]*(?:/[a-z0-9_+-]+)+|(?:utc|gmt)(?:[+-]\d{1,2}(?::?\d{2})?)?\b|`+
		`[+-]\d{2}:?\d{2}\b|(?-i:Z\b)|(?:your )?local(?: time)?\b`) != "" {
		zone, ok := zoneOf(strings.Trim(before[:len(before)-len(r.rest)], " \t*`()"), r.now)
		r.wrong, r.zone = r.wrong || !ok || r.zone != nil, zone
		r.match(`time\b`)
		if regexp.MustCompile(`[+-]\d{4}$`).MatchString(strings.TrimSuffix(before, r.rest)) {
			r.match(`(?-i:[A-Z]{3,5})\b`) // as Go prints times: the offset counts
		}
	}
}

// zoneOf returns a zone: a name of the zone database, UTC, an offset, or the local one. An abbreviation
// such as CST stands for several zones, so it is none.
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

// resolve returns the point in time that was read: the next one that fits.
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

// shown returns when a clock in a zone shows a time, which is given as one in UTC; not ok: never, or twice,
// as the summer time changes.
func shown(clock time.Time, zone *time.Location) (at time.Time, ok bool) {
	year, month, day := clock.Date()
	at = time.Date(year, month, day, clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
	times := 0
	for shift := -2 * time.Hour; shift <= 2*time.Hour; shift += 30 * time.Minute { // no clock is changed by more, or by other steps
		if at.Add(shift).Format(time.DateTime) == clock.Format(time.DateTime) {
			times++
		}
	}
	return at, times == 1
}
