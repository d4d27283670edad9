package render

import (
	"fmt"
	"time"
)

// Duration is a time for people: 999ms, 1.5s, 1m02s.
func Duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case ms < 1000:
		return fmt.Sprintf("%dms", max(ms, 0))
	case ms < 60_000:
		return fmt.Sprintf("%.1fs", float64(ms/100)/10)
	}
	d = d.Round(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours > 0 && minutes == 0:
		return fmt.Sprintf("%dh", hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case seconds == 0:
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dm%ds", minutes, seconds)
}
