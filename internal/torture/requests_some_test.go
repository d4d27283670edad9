//go:build !instruments

package main

const allRequests = false
