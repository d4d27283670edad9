package record_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
)

type found struct {
	at   int
	head record.Header
}

func scan(data []byte) (all []found) {
	for at, h := range record.Scan(data) {
		all = append(all, found{at, h})
	}
	var filed []found
	err := record.ScanFile(bytes.NewReader(data), int64(len(data)), func(at int64, h record.Header) bool {
		filed = append(filed, found{int(at), h})
		return true
	})
	if err != nil || !slices.Equal(all, filed) {
		panic("a file is scanned differently")
	}
	return all
}

func three() (data []byte, starts []int) {
	for i, body := range []string{"first body", "", "the third body"} {
		starts = append(starts, len(data))
		data = record.Append(data, record.Node, uint64(i+1)<<40, []byte(body))
	}
	return data, starts
}

func TestScan(t *testing.T) {
	t.Parallel()
	data, starts := three()
	all := scan(data)
	require.Len(t, all, 3)
	for i, f := range all {
		require.Equal(t, starts[i], f.at)
		require.Equal(t, uint64(i+1)<<40, f.head.Hash)
		require.Equal(t, record.Node, f.head.Kind)
	}
	require.Equal(t, "first body", string(data[record.HeaderSize:record.HeaderSize+all[0].head.Length]))
	require.GreaterOrEqual(t, record.MaxBody, cas.MaxFile)
}

// A cut at any byte costs only the record that it hits.
func TestScanOfACut(t *testing.T) {
	t.Parallel()
	data, starts := three()
	for end := range data {
		complete := 0
		for i := range starts {
			if next := append(starts[1:], len(data))[i]; next <= end {
				complete++
			}
		}
		require.Len(t, scan(data[:end]), complete, "cut at %d", end)
	}
}

// A flipped bit anywhere costs at most the record that it hits.
func TestScanOfAFlip(t *testing.T) {
	t.Parallel()
	data, starts := three()
	for i := range data {
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			all := scan(flipped)
			for k, start := range starts {
				end := append(starts[1:], len(data))[k]
				if i >= start && i < end {
					continue
				}
				require.Contains(t, all, found{start, scan(data)[k].head}, "byte %d, bit %d", i, bit)
			}
		}
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	_, ok := record.Parse(record.Header{Kind: record.Node, Length: record.MaxBody}.Append(nil))
	require.True(t, ok)
	_, ok = record.Parse(record.Header{Kind: record.Node, Length: record.MaxBody + 1}.Append(nil))
	require.False(t, ok)
	_, ok = record.Parse(make([]byte, record.HeaderSize))
	require.False(t, ok, "zeros are not a record")
}

func FuzzScan(f *testing.F) {
	data, _ := three()
	f.Add(data)
	f.Add(data[3:])
	f.Add([]byte("nnnnnnnnnnnnnnnnnnnnn"))
	f.Fuzz(func(t *testing.T, data []byte) {
		end := 0
		for at, h := range record.Scan(data) {
			require.GreaterOrEqual(t, at, end, "records don't overlap")
			end = at + int(h.Size())
			require.LessOrEqual(t, end, len(data))
			require.Equal(t, data[at:at+record.HeaderSize], h.Append(nil))
		}
	})
}

// Records are found across the borders of what ScanFile reads at once.
func TestScanOfALargeFile(t *testing.T) {
	t.Parallel()
	var data []byte
	for i := range 2000 {
		data = record.Append(data, record.Node, uint64(i), bytes.Repeat([]byte("n"), i%997*(i%3)))
	}
	require.Len(t, scan(data), 2000)
	damaged := bytes.Clone(data)
	for at := 5; at < len(damaged); at += 70_001 {
		damaged[at] ^= 1
	}
	require.Greater(t, len(scan(damaged)), 1900)
}
