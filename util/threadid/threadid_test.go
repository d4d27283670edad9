package threadid_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/threadid"
)

func TestNew(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 4, 5, 123e6, time.UTC)
	seen := map[string]bool{}
	for range 1000 {
		id, err := threadid.New(now, rand.Reader)
		require.NoError(t, err)
		require.True(t, threadid.Valid(id))
		require.True(t, strings.HasPrefix(id, "01M7"), "a standard ULID of 2026: %s", id)
		require.False(t, seen[id])
		seen[id] = true
		made, err := threadid.Time(id)
		require.NoError(t, err)
		require.Equal(t, now, made)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := threadid.New(time.Now(), bytes.NewReader([]byte("short")))
	require.Error(t, err, "never an id with less randomness")
	for _, when := range []time.Time{time.UnixMilli(-1), time.Date(10890, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err := threadid.New(when, rand.Reader)
		require.Error(t, err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"01KAK9QRZ5T8M3N4P6R7S9V0W1":  "01KAK9QRZ5T8M3N4P6R7S9V0W1",
		"01kak9qrz5t8m3n4p6r7s9v0w1":  "01KAK9QRZ5T8M3N4P6R7S9V0W1",
		"o1kak9qrz5t8m3n4p6r7s9volI":  "01KAK9QRZ5T8M3N4P6R7S9V011",
		"06GZQ6HFBN1DB3DTG0MM9P0488":  "06GZQ6HFBN1DB3DTG0MM9P0488",
		"":                            "",
		"01KAK9QRZ5T8M3N4P6R7S9V0W":   "",
		"01KAK9QRZ5T8M3N4P6R7S9V0W12": "",
		"01KAK9QRZ5T8M3N4P6R7S9V0WU":  "",
		"01KAK9QRZ5T8M3N4P6R7S9V0W!":  "",
		"01KAK9QRZ5-8M3N4P6R7S9V0W1":  "",
		"81KAK9QRZ5T8M3N4P6R7S9V0W1":  "",
		"01KAK9QRZ5T8M3N4P6R7S9V0é":   "",
	}
	for in, want := range tests {
		got, err := threadid.Parse(in)
		require.Equal(t, want, got, in)
		if want == "" {
			require.ErrorIs(t, err, threadid.ErrInvalid, in)
			require.False(t, threadid.Valid(in))
			continue
		}
		require.NoError(t, err, in)
		require.Equal(t, in == want, threadid.Valid(in))
	}
}

// vectors contains ids created and read by the original.
type vectors struct {
	Generate []struct {
		Ms        float64 `json:"ms"`
		ULID      string  `json:"ulid"`
		Extracted int64   `json:"extracted"`
	} `json:"generate"`
	Extract []struct {
		ULID      string `json:"ulid"`
		Extracted *int64 `json:"extracted"`
	} `json:"extract"`
}

// deviations lists ids that the original reads differently. It took every id for its own, checked only the
// first ten characters, and allowed times that don't fit a standard ULID. -1: not an id for us.
var deviations = map[string]struct {
	ms  int64
	why string
}{
	"0000000003ZZZZZZZZZZZZZZZW": {3, "1970, long before its first id: a standard one"},
	"00000000040G2081040G208104": {4, "the same"},
	"01J1234ABCDEFGHJKMNPQRSTVW": {1719131056492, "a standard ULID of 2024, not an id of 1983"},
	"7ZZZZZZZZZZZZZZZZZZZZZZZZZ": {281474976710655, "not padded on the right: a standard one"},
	"ZZZZZZZZZZZZZZZZZZZZZZZZZW": {-1, "the year 10889 on its scale"},
	"ZZZZZZZZZZZZZZZZZZZZZZZZZZ": {-1, "not padded on the right, and beyond a standard one"},
	"0000000000IIIIIIIIIIIIIIII": {-1, "not in the alphabet"},
}

func TestTimeVectors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/ulid.json")
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(text, &v))
	want := map[string]*int64{}
	for _, g := range v.Generate {
		want[g.ULID] = &g.Extracted
	}
	for _, x := range v.Extract {
		want[x.ULID] = x.Extracted
	}
	require.GreaterOrEqual(t, len(want), 12)
	invalid := int64(-1)
	for id, ms := range want {
		if d, ok := deviations[id]; ok {
			ms = &d.ms
		}
		if ms == nil {
			ms = &invalid
		}
		got, err := threadid.Time(id)
		if *ms == invalid {
			require.ErrorIs(t, err, threadid.ErrInvalid, id)
			continue
		}
		require.NoError(t, err, id)
		require.Equal(t, *ms, got.UnixMilli(), id)
	}
}

// Ids of both kinds from every month of a long period are distinguished.
func TestTimeDistinguishesKinds(t *testing.T) {
	t.Parallel()
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Date(2003, 1, 1, 0, 0, 0, 0, time.UTC); at.Before(end); at = at.AddDate(0, 1, 0) {
		standard, err := threadid.New(at, rand.Reader)
		require.NoError(t, err)
		got, err := threadid.Time(standard)
		require.NoError(t, err)
		require.Equal(t, at, got, standard)

		// The original's id is the standard id of four times the time, with the last two bits zero.
		shifted, err := threadid.New(time.UnixMilli(4*at.UnixMilli()+3), rand.Reader)
		require.NoError(t, err)
		original := shifted[:25] + "W"
		got, err = threadid.Time(original)
		require.NoError(t, err)
		require.Equal(t, at, got, original)
	}
}

func TestNewestIsByTime(t *testing.T) {
	t.Parallel()
	const (
		may2024  = "067TTNAE000000000000000000" // the original's
		june2024 = "01J1234ABCDEFGHJKMNPQRSTVW" // standard, although its text is smaller
		nov2026  = "06GZQ6HFBS144GJ289144GJ288" // the original's
		sameMs   = "06GZQ6HFBS144GJ289144GJ28C"
	)
	ids := []string{nov2026, "garbage", june2024, sameMs, may2024}
	slices.SortFunc(ids, threadid.Compare)
	require.Equal(t, []string{"garbage", may2024, june2024, nov2026, sameMs}, ids)
}

func FuzzParse(f *testing.F) {
	f.Add("01KAK9QRZ5T8M3N4P6R7S9V0W1")
	f.Add("06gzq6hfbn1db3dtg0mm9p0488")
	f.Add("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := threadid.Parse(s)
		if err != nil {
			require.ErrorIs(t, err, threadid.ErrInvalid)
			return
		}
		require.True(t, threadid.Valid(id))
		_, err = threadid.Time(id)
		require.NoError(t, err)
	})
}

// The order of ids of both kinds is the same with and without decoding times.
func TestNewestFirst(t *testing.T) {
	t.Parallel()
	ids := []string{"03QCPC7P00" + strings.Repeat("0", 16), "7ZZZZZZZZZ" + strings.Repeat("Z", 16)}
	for i := range 32 {
		random := strings.Repeat(string("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[i%32]), 13)
		ids = append(ids, "01M"+random[:10]+random, "06G"+random[:10]+random, fmt.Sprintf("0%d", i%8)+random[:11]+random)
	}
	for _, a := range ids {
		for _, b := range ids {
			require.Equal(t, threadid.Compare(b, a), threadid.NewestFirst(a, b), "%s, %s", a, b)
		}
	}
}
