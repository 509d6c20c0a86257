package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type Event struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

var (
	secrets = strings.Split(os.Getenv("WEBHOOK_SECRETS"), ",")
	lock    sync.Mutex
	seen    = map[string]bool{}
)

func handle(event Event) error {
	fmt.Println("handled", event.ID, event.Type)
	return nil
}

func isGenuine(header http.Header, body []byte) bool {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" {
		return false
	}
	if age := time.Since(time.Unix(seconds, 0)); age > 300*time.Second || age < -300*time.Second {
		return false
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		for _, entry := range strings.Split(header.Get("webhook-signature"), " ") {
			if hmac.Equal([]byte(entry), expected) {
				return true
			}
		}
	}
	return false
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, 1<<20))
	if err != nil || !isGenuine(request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event Event
	if err := json.Unmarshal(body, &event); err != nil {
		response.WriteHeader(http.StatusBadRequest)
		return
	}
	lock.Lock()
	defer lock.Unlock()
	if !seen[event.ID] {
		if err := handle(event); err != nil {
			log.Printf("event %s failed: %v", event.ID, err)
			response.WriteHeader(http.StatusInternalServerError)
			return
		}
		seen[event.ID] = true
	}
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Fatal(http.ListenAndServe(":"+port, http.HandlerFunc(receive)))
}
