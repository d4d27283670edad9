//go:build instruments

package main

const allRequests = true
