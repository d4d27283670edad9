package htmlpage

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

const minute = 60_000

func drawn(t *testing.T, add func(l *builder)) *Timeline {
	t.Helper()
	l := &builder{now: time.UnixMilli(1000 * minute)}
	add(l)
	return l.timeline()
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return n
}

// A long pause is drawn short, so that the work stays visible.
func TestALongPauseIsDrawnShort(t *testing.T) {
	t.Parallel()
	line := drawn(t, func(l *builder) {
		writer := l.lane("writer")
		writer.add(bar{Kind: barWork, from: minute, to: 2 * minute, first: 1, last: 1})
		writer.wait(2*minute, 900*minute, "before step 2")
		writer.add(bar{Kind: barWork, from: 900 * minute, to: 901 * minute, first: 2, last: 2})
	})
	require.True(t, line.Shortened)
	bars := line.Lanes[0].Bars
	require.Len(t, bars, 3)
	require.Equal(t, []string{barWork, barWait, barWork}, []string{bars[0].Kind, bars[1].Kind, bars[2].Kind})
	require.Greater(t, number(t, bars[0].W), 30.0)
	require.InDelta(t, number(t, bars[0].W), number(t, bars[2].W), 0.1, "steps of the same length look so")
	require.Greater(t, number(t, bars[1].W), 1.0)
	require.Equal(t, "waited 14h58m before step 2", bars[1].Title)
	require.Contains(t, line.Lanes[0].Facts, "waited 14h58m")
}

// For any number of steps with any times, the picture is small, and everything is inside it.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	line := drawn(t, func(l *builder) {
		for i := range 10_000 {
			at := int64(minute + i*1000)
			l.lane("writer").add(bar{Kind: barWork, from: at, to: at + 500, first: i + 1, last: i + 1})
			l.lane("writer").add(bar{Kind: barMark, from: at + 1, to: at + 1})
		}
		for i := range 5000 {
			l.lane(fmt.Sprintf("role %d", i)).add(bar{Kind: barWork, from: minute, to: minute - 5})
		}
	})
	require.Len(t, line.Lanes, mostLanes)
	require.Equal(t, 5001-mostLanes, line.More)
	require.Less(t, len(line.Lanes[0].Bars), 1000)
	for _, bar := range line.Lanes[0].Bars {
		x := number(t, bar.X)
		require.True(t, x >= 0 && x <= 100, bar.X)
		if bar.W != "" {
			require.LessOrEqual(t, x+number(t, bar.W), 101.0)
		}
	}
	for _, times := range [][2]int64{{-1 << 62, 1 << 62}, {1, 1}, {1 << 62, 1 << 62}} {
		line := drawn(t, func(l *builder) { l.lane("x").add(bar{Kind: barWork, from: times[0], to: times[1]}) })
		require.NotEmpty(t, line.Lanes[0].Bars)
	}
	require.Nil(t, drawn(t, func(*builder) {}))
}

// A plot has a column for each day of the period, and one color for values too small to see.
func TestPlot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	since := now.AddDate(0, 0, -7).UnixMilli()
	cost := func(usd float64) protocol.Totals {
		return protocol.Totals{Steps: 1, Usage: &protocol.Usage{CostUSD: &usd}}
	}
	s := protocol.Stats{Since: &since}
	for i := range 20 {
		s.Rows = append(s.Rows, protocol.StatsRow{Of: map[string]string{"day": "2026-11-20", "role": fmt.Sprintf("r%02d", i)}, Totals: cost(float64(20 - i))})
	}
	p := PlotOf(s, "role", now)
	require.Equal(t, "Cost", p.What)
	require.Equal(t, "day", p.Of)
	require.Equal(t, "2026-11-20", p.First)
	require.Equal(t, "2026-11-23", p.Last)
	require.Len(t, p.Groups, plotGroups+1)
	require.Equal(t, "r00", p.Groups[0].Name)
	require.Equal(t, others, p.Groups[plotGroups].Name)
	require.Len(t, p.Bars, plotGroups+1)
	require.Equal(t, "0.50", p.Bars[0].X, "the first day with data")

	s = protocol.Stats{Rows: []protocol.StatsRow{{Of: map[string]string{"day": "1970-01-31"}, Totals: protocol.Totals{DurationMs: 1}}}}
	p = PlotOf(s, "", now)
	require.Equal(t, "Time", p.What, "nothing else is known")
	require.Equal(t, "year", p.Of)
	require.Nil(t, PlotOf(protocol.Stats{}, "", now))
	s.Rows[0].Of["day"] = "10000-01-01"
	require.NotEmpty(t, PlotOf(s, "", now).Bars)
}
