package main

import (
	"slices"
	"time"
)

// row is a promise: subject costs at most so many times what anchor costs.
type row struct {
	name, against   string
	promise         float64
	subject, anchor func() error
	before          func() error // before each round, and not counted
	rounds          int          // at most; 0: as many as the others
}

// result is what was measured. The ratios are taken pair by pair, so that a
// machine that slows down slows both sides.
type result struct {
	Name      string  `json:"name"`
	Against   string  `json:"against"`
	Min       float64 `json:"min"`
	Median    float64 `json:"median"`
	P90       float64 `json:"p90"`
	Promise   float64 `json:"promise"`
	SubjectMs float64 `json:"subjectMs"` // medians
	AnchorMs  float64 `json:"anchorMs"`
	Rounds    int     `json:"rounds"`
}

// warmUp rounds are not counted.
const warmUp = 2

func (r row) measure(rounds int) (result, error) {
	var ratios, subjects, anchors []float64
	if r.rounds > 0 {
		rounds = min(rounds, r.rounds)
	}
	for i := range rounds + warmUp {
		if r.before != nil {
			if err := r.before(); err != nil {
				return result{}, err
			}
		}
		anchor, err := timed(r.anchor)
		if err != nil {
			return result{}, err
		}
		subject, err := timed(r.subject)
		if err != nil {
			return result{}, err
		}
		if i >= warmUp {
			ratios = append(ratios, subject/anchor)
			subjects, anchors = append(subjects, subject), append(anchors, anchor)
		}
	}
	slices.Sort(ratios)
	slices.Sort(subjects)
	slices.Sort(anchors)
	return result{
		Name: r.name, Against: r.against, Promise: r.promise, Rounds: rounds,
		Min: ratios[0], Median: ratios[len(ratios)/2], P90: ratios[len(ratios)*9/10],
		SubjectMs: subjects[len(subjects)/2], AnchorMs: anchors[len(anchors)/2],
	}, nil
}

// timed is how long f takes, in milliseconds.
func timed(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return float64(time.Since(start).Microseconds()) / 1000, err
}
