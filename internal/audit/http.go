package audit

// ViaHTTP is a request of the HTTP API.
const ViaHTTP Via = "http"
