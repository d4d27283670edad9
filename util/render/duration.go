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
	return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
}
