package main

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// share is the part of the points that a run tries, in the order of its seed.
// The zero value is all of them, as far as the time goes. Of other scenarios only
// whole and match are asked.
type share struct {
	from  int    // so many of the share are left out, because an earlier run has tried them
	shard int    // which of the shards, from 1
	of    int    // how many there are; 0 is one
	whole bool   // whatever time it takes
	match string // only points whose command, fault and number contain this
}

// parseShard reads "2/4", the second of four; "" is the only one.
func (s *share) parseShard(text string) error {
	if text == "" {
		return nil
	}
	n, err := fmt.Sscanf(text, "%d/%d", &s.shard, &s.of)
	if err != nil || n != 2 || s.shard < 1 || s.shard > s.of {
		return fmt.Errorf("-shard %s: the second of four is 2/4", text)
	}
	return nil
}

// take orders points by the seed and returns the share of them. A point's place
// does not depend on how many others there are: a command makes a call more or
// less from run to run, and a run that goes on must meet the same order.
func (s share) take(all []point, seed uint64) []point {
	slices.SortFunc(all, func(a, b point) int { return strings.Compare(a.key(seed), b.key(seed)) })
	var ours []point
	for i, p := range all {
		if (s.of == 0 || i%s.of == s.shard-1) && strings.Contains(p.String(), s.match) {
			ours = append(ours, p)
		}
	}
	return ours[min(s.from, len(ours)):]
}

// String is what -match looks at: "thread kill: EIO at 12".
func (p point) String() string { return fmt.Sprintf("%s: %s at %d", p.subject.name, p.fault, p.at) }

// key is a number that looks random, and the same for the same point and seed.
func (p point) key(seed uint64) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, p)
	return fmt.Sprintf("%016x", h.Sum64())
}
