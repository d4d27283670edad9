//go:build !exhaustive

package sampletest

const exhaustive = false
