package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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

type Delivery struct {
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"`
}

type Signup struct {
	GateSessionID string   `json:"gate_session_id"`
	GateAccountID string   `json:"gate_account_id"`
	Delivery      Delivery `json:"delivery"`
}

type Event struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

var (
	secrets  = strings.Split(os.Getenv("WEBHOOK_SECRETS"), ",")
	encode   = base64.RawURLEncoding.EncodeToString
	lock     sync.Mutex
	accounts = map[string]map[string]string{}
)

func createAccount(signup Signup) (map[string]string, error) {
	key := make([]byte, 24)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	fmt.Println("created", signup.GateSessionID, signup.GateAccountID)
	return map[string]string{"ACME_API_KEY": "acme_" + hex.EncodeToString(key)}, nil
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

func seal(outputs map[string]string, delivery Delivery) (map[string]any, error) {
	raw, err := base64.RawURLEncoding.DecodeString(delivery.PublicKey)
	if err != nil {
		return nil, err
	}
	theirs, err := ecdh.X25519().NewPublicKey(raw)
	if err != nil {
		return nil, err
	}
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	shared, err := private.ECDH(theirs)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 32+12)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	salt, iv := random[:32], random[32:]
	key, err := hkdf.Key(sha256.New, shared, salt, "foil-gate-delivery:v1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"version": 1, "outputs": outputs})
	if err != nil {
		return nil, err
	}
	sealed := gcm.Seal(nil, iv, text, nil)
	end := len(sealed) - gcm.Overhead()
	return map[string]any{
		"version":              1,
		"algorithm":            "x25519-hkdf-sha256/aes-256-gcm",
		"key_id":               delivery.KeyID,
		"ephemeral_public_key": encode(private.PublicKey().Bytes()),
		"salt":                 encode(salt),
		"iv":                   encode(iv),
		"ciphertext":           encode(sealed[:end]),
		"tag":                  encode(sealed[end:]),
	}, nil
}

func answerTo(data json.RawMessage) (map[string]any, error) {
	var signup Signup
	if err := json.Unmarshal(data, &signup); err != nil {
		return nil, err
	}
	lock.Lock()
	defer lock.Unlock()
	outputs, known := accounts[signup.GateSessionID]
	if !known {
		created, err := createAccount(signup)
		if err != nil {
			return nil, err
		}
		outputs, accounts[signup.GateSessionID] = created, created
	}
	envelope, err := seal(outputs, signup.Delivery)
	return map[string]any{"encrypted_delivery": envelope}, err
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
	if event.Type != "gate.session.approved" {
		response.WriteHeader(http.StatusNoContent)
		return
	}
	answer, err := answerTo(event.Data)
	if err != nil {
		log.Printf("signup failed: %v", err)
		response.WriteHeader(http.StatusInternalServerError)
		return
	}
	response.Header().Set("content-type", "application/json")
	json.NewEncoder(response).Encode(answer)
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "3000"
	}
	log.Fatal(http.ListenAndServe(":"+port, http.HandlerFunc(receive)))
}
